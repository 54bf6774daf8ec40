"""``workers="auto"``: processes that are added and retired while batches flow."""
