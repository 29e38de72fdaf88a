"""REVIS: directions of hidden states, the layer and the threshold to steer at, and the steering itself."""
