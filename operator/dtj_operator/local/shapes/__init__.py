"""What Kubernetes' types look like: fields, required ones, lists' merge keys.

Built-in ones come from the Python client, custom ones from their schema.
"""
