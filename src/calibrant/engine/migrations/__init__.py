"""From one version of the tables to the next. Run from within the package: users need no alembic.ini."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import command
from alembic.config import Config


def upgrade(connection: sa.Connection, version: str) -> None:
    """Bring the tables to a version inside the transaction that the connection is in."""
    config = Config()
    config.set_main_option("script_location", "calibrant.engine:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, version)
