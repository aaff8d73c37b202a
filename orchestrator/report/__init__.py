"""What a person reads: the table in the terminal, the Markdown report, MLflow's runs."""
