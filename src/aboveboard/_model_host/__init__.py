"""The process that holds a model from a file: ``python -m aboveboard._model_host``, started by the audit.

It reads the model, and answers questions about rows that come over a socket, until that is closed. It imports nothing
of the audit. A model that crashes, hangs or eats all memory takes this process with it and not the audit; it is no
prison: what the model's code may do, this process may do too.
"""
