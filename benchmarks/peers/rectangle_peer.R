# mvtnorm (Genz and Bretz) of a rectangle with the same limits for all coordinates.
# Rscript rectangle_peer.R <covariance.csv> <lower> <upper> <points>
given <- commandArgs(trailingOnly = TRUE)
cov <- as.matrix(read.csv(given[1], header = FALSE))
dimnames(cov) <- NULL
n <- nrow(cov)
ends <- as.numeric(given[2:3])
algorithm <- mvtnorm::GenzBretz(maxpts = as.numeric(given[4]), abseps = 0, releps = 1e-4)
set.seed(1)
start <- sum(proc.time()[c("user.self", "sys.self")])
found <- mvtnorm::pmvnorm(rep(ends[1], n), rep(ends[2], n), sigma = cov, algorithm = algorithm)
seconds <- sum(proc.time()[c("user.self", "sys.self")]) - start
# its error is 3.5 standard errors of the probability
cat(sprintf('{"version": "mvtnorm %s, R %s", "probability": %.17g, "standard_error": %.17g, "cpu_seconds": %g}\n',
            packageVersion("mvtnorm"), getRversion(), as.numeric(found), attr(found, "error") / 3.5, seconds))
