module lamina/testbed/idle

go 1.22
