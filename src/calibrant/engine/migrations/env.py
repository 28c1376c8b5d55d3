"""What alembic runs around the steps in `versions`: they share the transaction of the connection they are given."""

from __future__ import annotations

from alembic import context

from calibrant.engine.schema import VERSION_TABLE, metadata


def migrate() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
    )
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":  # the name under which alembic runs this file; importing it does nothing
    migrate()
