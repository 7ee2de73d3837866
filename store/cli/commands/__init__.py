"""The groups of commands, a module each; ``add_to(app)`` puts them into the app."""
