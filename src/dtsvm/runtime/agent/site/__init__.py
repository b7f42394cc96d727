"""A node's files: its configuration, certificates, checkpoint and folder."""
