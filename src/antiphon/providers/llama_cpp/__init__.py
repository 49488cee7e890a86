"""Models that answer in this process, from a GGUF file, through llama.cpp."""
