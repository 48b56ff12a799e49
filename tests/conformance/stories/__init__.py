"""What is asked of a server, one module per topic; each function is one story, told step by step."""
