"""The study of Cao and Katzfuss (2024): how much estimates of Gaussian probabilities in 900 dimensions vary."""
