"""``lamina qos``: the promises of controllers, and how a running scheduler keeps them."""
