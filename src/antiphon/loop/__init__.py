"""The song: the machine as one table, and the driver that carries out what it says."""
