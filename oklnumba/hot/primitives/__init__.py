"""What the loops share: the decorator, kernel rows, linear algebra, dictionaries, losses."""
