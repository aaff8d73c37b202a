"""Running what was planned, through ports: warm deployments, blocks in pairs, trials."""
