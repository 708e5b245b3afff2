"""`lamina catalog`: build, show and generate image catalogs."""
