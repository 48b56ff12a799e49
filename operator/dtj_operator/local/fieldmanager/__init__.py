"""Who owns which field: managedFields, and server-side apply that works by them."""
