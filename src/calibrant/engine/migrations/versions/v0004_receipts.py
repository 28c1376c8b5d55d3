"""Receipts: what a paper published beside what we have."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "calibrant_receipts",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("paper", sa.Text, nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("made", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
