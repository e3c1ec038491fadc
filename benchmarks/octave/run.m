% Independent runs of the toolbox's infMCMC and gp on one problem of Experiment 4; README.md says how to run it.
%
%   octave-cli --path TOOLBOX run.m FOLDER SAMPLER SAMPLES SKIP RUNS
%
% FOLDER has train.csv (features, then the label), test.csv (features) and hyperparameters.csv (alpha, beta), which
% emulate.py writes. Appends to FOLDER/toolbox.csv a line a run: sampler, samples, skip, run, log evidence, mean
% log likelihood of the kept states, acceptance, CPU seconds, and P(y* = +1 | y) at each test input.
1;

function K = rbf(hyp, x, z)  % beta exp(-|x - z|^2 / alpha^2), in the form that the toolbox calls
  if nargin < 2, K = '2'; return; end
  if nargin < 3, z = x; end
  if ischar(z), K = hyp(2) * ones(rows(x), 1); return; end
  K = hyp(2) * exp(-max(sumsq(x, 2) + sumsq(z, 2)' - 2 * x * z', 0) / hyp(1)^2);
end

function m = zero(hyp, x)
  if nargin < 2, m = '0'; else m = zeros(rows(x), 1); end
end

given = argv();
[folder, sampler] = given{end-4:end-3};
samples = str2double(given{end-2});
skip = str2double(given{end-1});
runs = str2double(given{end});
warning('off', 'all');  % the acceptance rate of hybrid Monte Carlo, which is recorded
train = csvread(fullfile(folder, 'train.csv'));
x = train(:, 1:end-1);
y = train(:, end);
xs = csvread(fullfile(folder, 'test.csv'));
hyp = struct('cov', csvread(fullfile(folder, 'hyperparameters.csv')), 'mean', [], 'lik', []);
par = struct('sampler', sampler, 'Nsample', samples, 'Nskip', skip);
[mean_of, cov, lik] = deal({@zero}, {@rbf}, {@likErf});
K = rbf(hyp.cov, x);
for run = 1:runs
  randn('twister', 1000 * samples + run);
  rand('twister', 2000000 + 1000 * samples + run);
  start = cputime();
  [post, nlZ] = infMCMC(hyp, mean_of, cov, lik, x, y, par);
  ymu = gp(hyp, @infMCMC, mean_of, cov, lik, x, post, xs);
  seconds = cputime() - start;
  level = mean(sum(logphi(y .* (K * post.alpha)), 1));
  file = fopen(fullfile(folder, 'toolbox.csv'), 'a');
  fprintf(file, '%s,%d,%d,%d,%.10g,%.10g,%.4g,%.3g', sampler, samples, skip, run, -nlZ, level, ...
          post.acceptance_rate_MCMC, seconds);
  fprintf(file, ',%.8g', (1 + ymu) / 2);
  fprintf(file, '\n');
  fclose(file);
end
