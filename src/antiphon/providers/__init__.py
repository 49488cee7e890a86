"""Who answers: models behind one protocol, each with a pure encoder, a pure decoder and a connection."""
