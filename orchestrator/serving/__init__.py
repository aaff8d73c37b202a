"""What runs inside a Serve replica. Only here is vLLM imported, and only inside functions."""
