"""Checkpoints: where games stand that are not over."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "calibrant_checkpoints",
        sa.Column("cell", sa.Text, primary_key=True),
        sa.Column("chunk", sa.Text, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
