# Packages of R for the probability of an orthant, which is the marginal likelihood: mvtnorm (Genz and Bretz) and
# TruncatedNormal (Botev).   Rscript orthant_peer.R <package> <covariance.csv>
given <- commandArgs(trailingOnly = TRUE)
say <- function(method, status, value, seconds, error = NaN) {
  number <- function(x) if (is.finite(x)) sprintf("%.12g", x) else "null"
  cat(sprintf('{"method": "%s", "status": "%s", "log_evidence": %s, "probability": null, "cpu_seconds": %s, "standard_error": %s}\n',
              method, gsub('["\n\\]', " ", substr(status, 1, 200)), number(value), number(seconds), number(error)))
}
cov <- as.matrix(read.csv(given[2], header = FALSE))
dimnames(cov) <- NULL
n <- nrow(cov)
for (points in c(25000, 250000)) {
  method <- sprintf("%s, %g points", if (given[1] == "mvtnorm") "Genz-Bretz" else "minimax tilting", points)
  set.seed(1)
  start <- sum(proc.time()[c("user.self", "sys.self")])
  found <- tryCatch({
    if (given[1] == "mvtnorm")
      mvtnorm::pmvnorm(lower = rep(0, n), sigma = cov, algorithm = mvtnorm::GenzBretz(maxpts = points, abseps = 0, releps = 1e-4))
    else
      TruncatedNormal::pmvnorm(mu = rep(0, n), sigma = cov, lb = rep(0, n), B = points, type = "qmc")
  }, error = function(e) e)
  seconds <- sum(proc.time()[c("user.self", "sys.self")]) - start
  if (inherits(found, "error")) say(method, conditionMessage(found), NaN, seconds)
  else if (!(found > 0)) say(method, "the probability is zero to rounding", NaN, seconds)
  else {
    # mvtnorm's is 3.5 standard errors of the probability; TruncatedNormal's is one, over the probability
    error <- if (given[1] == "mvtnorm") attr(found, "error") / 3.5 / as.numeric(found) else attr(found, "relerr")
    if (is.null(error)) error <- NaN
    say(method, "ok", log(as.numeric(found)), seconds, error)
  }
}
