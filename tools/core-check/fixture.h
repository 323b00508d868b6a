/* Models on made-up data, and runs of one set of members, for the tests. */
#ifndef TB_FIXTURE_H
#define TB_FIXTURE_H

#include "check.h"

#include "data/store.h"
#include "models/model.h"
#include "responses/response.h"
#include "run/run.h"

enum fixture_column {
  FIXTURE_WEIGHTS = 1u << 0,
  FIXTURE_OFFSET = 1u << 1,
  FIXTURE_SIGMA = 1u << 2,     /* sampled; family gaussian only */
  FIXTURE_READ_ONLY = 1u << 3, /* its rows must stay as they are */
  FIXTURE_STRATA = 1u << 4     /* of times in pieces */
};

/* A model, and memory for calling it. */
struct fixture {
  struct tb_model model;
  struct tb_workspace work;
  struct tb_rng rng;
};

/* What the models that follow keep their rows in; NULL: dense stores. A test
 * that sets it sets it back. */
extern const struct tb_store_type* fixture_store;

/* a model of the type it has, with stores of that type; writable ones */
enum tb_status fixture_create_from(struct tb_model* p_model,
                                   const struct tb_params* p_params,
                                   bool is_read_only);
enum tb_status fixture_create(struct tb_model* p_model,
                              const struct tb_params* p_params);

/* the place of the first response of that name */
int fixture_place(const char* name);
/* may y, in each of its columns, be of a response? */
bool fixture_has_value(const struct tb_response_type* type, double y);
/* Columns of y of n rows whose first one is there: limits may be one, lie
 * apart, or nowhere. */
void fixture_more_columns(const struct tb_response_type* type,
                          size_t n,
                          double* v_y);
/* the columns of a row whose first one is y: the i-th of those that it may
 * have, over and over */
void fixture_row(const struct tb_response_type* type,
                 size_t i,
                 double y,
                 double* v_y);

/* family: 0 gaussian, 1 bernoulli, 2 poisson, or the place of a response of
 * several columns of y; normal priors */
void fixture_glm(struct fixture* p,
                 size_t n_data,
                 size_t n_coef,
                 int family,
                 unsigned columns);
void fixture_gaussian(struct fixture* p, size_t n_data, size_t n_dim);
/* one hidden layer of three units; likelihood: 0 gaussian with sigma sampled,
 * 1 bernoulli, 2 categorical with three classes, 3 the tests' own with two
 * predictors, sigma sampled, 4 with two columns of y */
void fixture_network(struct fixture* p,
                     size_t n_data,
                     int activation,
                     int likelihood);
/* independent components: n_source^2 parameters */
void fixture_ica(struct fixture* p, size_t n_data, size_t n_source);
/* four columns, that of ones first where classes are unordered; head: 0
 * softmax, 1 cumulative logit, 2 probit; an offset of ordered classes only */
void fixture_classes(struct fixture* p,
                     size_t n_data,
                     int head,
                     size_t n_class,
                     unsigned columns);
/* Three columns; 8 pieces at most. Of strata the first has one of them, the
 * second, whose rows have a 1 in the last column, the others. */
void fixture_pieces(struct fixture* p,
                    size_t n_data,
                    size_t n_piece,
                    unsigned columns);
/* Three columns of the first predictor and two of the second, the first of each
 * of ones where there are intercepts; response: its name */
void fixture_predictors(struct fixture* p,
                        size_t n_data,
                        const char* response,
                        bool has_intercepts,
                        unsigned columns);
/* bpmf or pmf: 3 users, 2 items, rank 2 */
void fixture_factors(struct fixture* p, size_t n_data, const char* name);
/* A user's table, a regression with known scale; a model of it, and one of any
 * table with the arrays x (n_data x n_dim) and y. Without what is optional but
 * scratch if is_minimal. */
extern const struct tb_native_type fixture_user;
enum tb_status fixture_native_create(struct tb_model* p_model,
                                     const struct tb_native_type* p_type,
                                     size_t n_data,
                                     size_t n_dim);
void fixture_native(struct fixture* p,
                    size_t n_data,
                    size_t n_dim,
                    bool is_minimal);
/* groups of 1 to 5 rows, two columns and so many effects, one or two; family as
 * in fixture_glm(), with sigma sampled; and what their rows are, in order */
struct fixture_rows {
  size_t n_group, n_row;
  double* v_first;  /* n_group + 1 */
  double* v_x;      /* n_row x 2 */
  double* v_y;      /* n_row x n_y */
  double* v_weight; /* that bernoulli does not take */
  double* v_offset;
};
void fixture_groups(struct fixture* p,
                    size_t n_group,
                    size_t n_effect,
                    int family);
struct fixture_rows fixture_groups_rows(size_t n_group, int family);
void fixture_rows_free(struct fixture_rows* p_rows);
/* the workspace of a model that was made */
void fixture_finish(struct fixture* p);
/* topics: documents of 1 to 5 words of 6, three topics, 18 parameters */
/* coordinates: 0 natural, 1 mean */
void fixture_lda(struct fixture* p, size_t n_data, double coordinates);
void fixture_free(struct fixture* p);

/* Its expansion at one point, against its gradients there and at another. */
enum { FIXTURE_MOST_DIM = 24 };
void fixture_check_expansion(struct check* p_check,
                             const struct fixture* p,
                             uint64_t seed);

/* n_dim numbers near zero, others for each seed */
void fixture_point(const struct fixture* p, uint64_t seed, double* v_theta);

/* log posterior and gradient over all rows, row by row in order */
double fixture_gradient(const struct fixture* p,
                        const double* v_theta,
                        double* v_gradient);

/* ---- runs ---- */

/* What varies between the runs that are tested. */
struct fixture_run {
  const char* kernel;    /* default "sgld" */
  const char* estimator; /* default "simple" */
  double step_size;
  double variant;    /* sgld, sgbd: 0 vanilla, 1 corrected; sghmc: estimates? */
  double leapfrog;   /* sghmc */
  double integrator; /* sgld: 0 euler, 1 leimkuhler-matthews */
  double adapt;      /* Metropolis kernels */
  double sigma_direction;      /* mala, adam_mcmc */
  double learning_rate;        /* adam_mcmc */
  double exact;                /* adam_mcmc */
  const double* v_beta;        /* adam_mcmc: 2; default 0.7, 0.9 */
  const double* v_momentum_sd; /* adam_mcmc: 2; default 2, 4 */
  double ratio;                /* 0 full, 1 minibatch */
  double steps;                /* hmc */
  double size;        /* rows of a minibatch, with replacement; default 10 */
  double refresh;     /* svrg */
  bool is_coupled;    /* a bias estimate of every step in two blocks, coupled */
  const char* scheme; /* default "uniform" of `size`; else with v_scheme */
  const struct tb_param* v_scheme;
  size_t n_scheme;
  size_t n_chain;
  size_t n_warmup;
  size_t n_sampling;
  uint64_t seed;
  const double* v_init; /* n_dim x n_chain */
};

/* tb_run_create(); the estimator's point is zero */
enum tb_status fixture_run_create(const struct fixture* p,
                                  const struct fixture_run* p_what,
                                  struct tb_run** pp_run);

/* created, started, advanced by n_step in slices of n_slice, every draw into
 * v_draw (n_sampling x n_chain x n_dim) unless NULL */
enum tb_status fixture_run_go(const struct fixture* p,
                              const struct fixture_run* p_what,
                              size_t n_slice,
                              double* v_draw);

#endif
