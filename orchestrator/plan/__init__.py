"""Pure: from a specification to what will be run. No clock, no randomness, no ray, no vllm."""
