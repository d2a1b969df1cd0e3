"""The subjects of the suites other than the tabular one: one module per suite, named like it.

Each has ``read(table, settings, **common)``, which turns a table into the suite's subject, and ``example(*,
random_state)``, which gives the table that is audited without DATA. The suite table (``aboveboard.auditing.suites``)
says what each takes; ``aboveboard.auditing.suite_audit`` runs them.
"""
