"""The product: ranking nodes by what they already hold of a pod's images."""
