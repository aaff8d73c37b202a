"""Servers that already run: found out about, asked, never started, never stopped.

access     the key, the headers, the certificate; what must never be written down
server     does it answer, for which model, what engine is it
asking     how it can be asked: `usage`, and the fields that it refuses
survey     both servers before the first trial, and what a reader has to know
deployer   ports.Deployer over such servers
telemetry  host figures where the server runs on this host
redacted   a load client whose records hold no key
"""
