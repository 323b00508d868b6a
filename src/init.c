/* The doors, in alphabetical order. */
#include "ffi/args.h"

#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

SEXP ffi_add_away(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_add_squares(SEXP, SEXP, SEXP);
SEXP ffi_add_sums(SEXP, SEXP);
SEXP ffi_arrow_columns(SEXP, SEXP, SEXP);
SEXP ffi_arrow_schema(SEXP);
SEXP ffi_away_mean(SEXP, SEXP, SEXP);
SEXP ffi_batch_rows(SEXP, SEXP, SEXP);
SEXP ffi_batch_turn(SEXP);
SEXP ffi_chunk_draw(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_chunk_model(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_chunk_sums(SEXP, SEXP, SEXP);
SEXP ffi_column_ranges(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_column_missing(SEXP, SEXP, SEXP);
SEXP ffi_column_moments(SEXP, SEXP);
SEXP ffi_column_sds(SEXP);
SEXP ffi_model_release(SEXP);
SEXP ffi_custom_spec(SEXP);
SEXP ffi_design_fill(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_factors_map(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_file_abandon(SEXP);
SEXP ffi_file_append(SEXP, SEXP);
SEXP ffi_file_check(SEXP);
SEXP ffi_file_create(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_file_finish(SEXP);
SEXP ffi_file_head(SEXP);
SEXP ffi_file_place(SEXP, SEXP);
SEXP ffi_file_rows(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_file_sweep(SEXP);
SEXP ffi_fssd(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_gradient_info(SEXP);
SEXP ffi_groups_add(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_groups_draws(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_crossed_chain_size(SEXP);
SEXP ffi_crossed_pairs(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_groups_finish(SEXP);
SEXP ffi_groups_look(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_groups_merge(SEXP, SEXP, SEXP);
SEXP ffi_groups_moments(SEXP, SEXP, SEXP);
SEXP ffi_groups_n_node(SEXP);
SEXP ffi_groups_n_row(SEXP);
SEXP ffi_groups_nodes(SEXP, SEXP);
SEXP ffi_groups_open(SEXP);
SEXP ffi_groups_rows(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_hash(SEXP);
SEXP ffi_hash_uniforms(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_kernel_info(SEXP, SEXP);
SEXP ffi_ksd(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_link_product(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_model_create(SEXP, SEXP, SEXP);
SEXP ffi_model_curvature(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_model_custom(SEXP);
SEXP ffi_model_diagonal(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_model_gradient(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_mixture_draw(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_mixture_precision(SEXP, SEXP, SEXP);
SEXP ffi_mixture_registry(void);
SEXP ffi_mixture_simulate(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_model_info(SEXP);
SEXP ffi_model_reach(SEXP, SEXP, SEXP);
SEXP ffi_model_is_alive(SEXP);
SEXP ffi_model_largest_predictor(SEXP, SEXP);
SEXP ffi_model_log_lik(SEXP, SEXP, SEXP);
SEXP ffi_model_log_lik_many(SEXP, SEXP);
SEXP ffi_model_merge(SEXP, SEXP);
SEXP ffi_model_product_sums(SEXP, SEXP, SEXP);
SEXP ffi_model_scale(SEXP, SEXP, SEXP);
SEXP ffi_model_spread(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_model_to_parameter(SEXP, SEXP);
SEXP ffi_model_to_sampler(SEXP, SEXP);
SEXP ffi_model_to_variables(SEXP, SEXP);
SEXP ffi_model_weights(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_model_whiten(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_native_info(SEXP);
SEXP ffi_network_block(SEXP, SEXP);
SEXP ffi_network_map(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_registry(SEXP);
SEXP ffi_reservoir_add(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_reservoir_counts(SEXP);
SEXP ffi_reservoir_create(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_reservoir_merge(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_reservoir_smallest(SEXP);
SEXP ffi_reservoir_weights(SEXP, SEXP, SEXP);
SEXP ffi_response_bounds(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_response_deviance(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_response_evaluate(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_response_mean(SEXP, SEXP, SEXP);
SEXP ffi_response_outside(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_response_registry(void);
SEXP ffi_response_variance(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_rng_block(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_rng_index(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_rng_norm(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_rows_digest(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_run_advance(SEXP, SEXP, SEXP);
SEXP ffi_run_create(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_run_destroy(SEXP);
SEXP ffi_run_position(SEXP);
SEXP ffi_run_progress(SEXP);
SEXP ffi_run_refill(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_run_report(SEXP);
SEXP ffi_run_status(SEXP);
SEXP ffi_schedule_collected(SEXP, SEXP, SEXP);
SEXP ffi_subsample_draw(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_subsample_info(SEXP);
SEXP ffi_sums_means(SEXP, SEXP);
SEXP ffi_tape_run(SEXP, SEXP, SEXP);
SEXP ffi_text_join(SEXP, SEXP, SEXP);
SEXP ffi_text_read(SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_text_records(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);
SEXP ffi_tie_rows(SEXP, SEXP, SEXP, SEXP);
SEXP ffi_topics_proportions(SEXP, SEXP, SEXP, SEXP, SEXP);

#define DOOR(name, n_arg)                                                      \
  { #name, (DL_FUNC)&name, n_arg }

static const R_CallMethodDef v_door[] = {DOOR(ffi_add_away, 4),
                                         DOOR(ffi_add_squares, 3),
                                         DOOR(ffi_add_sums, 2),
                                         DOOR(ffi_arrow_columns, 3),
                                         DOOR(ffi_arrow_schema, 1),
                                         DOOR(ffi_away_mean, 3),
                                         DOOR(ffi_batch_rows, 3),
                                         DOOR(ffi_batch_turn, 1),
                                         DOOR(ffi_chunk_draw, 5),
                                         DOOR(ffi_chunk_model, 8),
                                         DOOR(ffi_chunk_sums, 3),
                                         DOOR(ffi_column_ranges, 4),
                                         DOOR(ffi_column_missing, 3),
                                         DOOR(ffi_column_moments, 2),
                                         DOOR(ffi_column_sds, 1),
                                         DOOR(ffi_model_release, 1),
                                         DOOR(ffi_custom_spec, 1),
                                         DOOR(ffi_design_fill, 9),
                                         DOOR(ffi_factors_map, 4),
                                         DOOR(ffi_file_abandon, 1),
                                         DOOR(ffi_file_append, 2),
                                         DOOR(ffi_file_check, 1),
                                         DOOR(ffi_file_create, 5),
                                         DOOR(ffi_file_finish, 1),
                                         DOOR(ffi_file_head, 1),
                                         DOOR(ffi_file_place, 2),
                                         DOOR(ffi_file_rows, 4),
                                         DOOR(ffi_file_sweep, 1),
                                         DOOR(ffi_fssd, 9),
                                         DOOR(ffi_gradient_info, 1),
                                         DOOR(ffi_groups_add, 9),
                                         DOOR(ffi_groups_draws, 5),
                                         DOOR(ffi_crossed_chain_size, 1),
                                         DOOR(ffi_crossed_pairs, 5),
                                         DOOR(ffi_groups_finish, 1),
                                         DOOR(ffi_groups_look, 6),
                                         DOOR(ffi_groups_merge, 3),
                                         DOOR(ffi_groups_moments, 3),
                                         DOOR(ffi_groups_n_node, 1),
                                         DOOR(ffi_groups_n_row, 1),
                                         DOOR(ffi_groups_nodes, 2),
                                         DOOR(ffi_groups_open, 1),
                                         DOOR(ffi_groups_rows, 8),
                                         DOOR(ffi_hash, 1),
                                         DOOR(ffi_hash_uniforms, 4),
                                         DOOR(ffi_kernel_info, 2),
                                         DOOR(ffi_ksd, 7),
                                         DOOR(ffi_link_product, 5),
                                         DOOR(ffi_model_create, 3),
                                         DOOR(ffi_model_curvature, 6),
                                         DOOR(ffi_model_custom, 1),
                                         DOOR(ffi_model_diagonal, 4),
                                         DOOR(ffi_model_gradient, 5),
                                         DOOR(ffi_mixture_draw, 5),
                                         DOOR(ffi_mixture_precision, 3),
                                         DOOR(ffi_mixture_registry, 0),
                                         DOOR(ffi_mixture_simulate, 4),
                                         DOOR(ffi_model_info, 1),
                                         DOOR(ffi_model_reach, 3),
                                         DOOR(ffi_model_is_alive, 1),
                                         DOOR(ffi_model_largest_predictor, 2),
                                         DOOR(ffi_model_log_lik, 3),
                                         DOOR(ffi_model_log_lik_many, 2),
                                         DOOR(ffi_model_merge, 2),
                                         DOOR(ffi_model_product_sums, 3),
                                         DOOR(ffi_model_scale, 3),
                                         DOOR(ffi_model_spread, 5),
                                         DOOR(ffi_model_to_parameter, 2),
                                         DOOR(ffi_model_to_sampler, 2),
                                         DOOR(ffi_model_to_variables, 2),
                                         DOOR(ffi_model_weights, 5),
                                         DOOR(ffi_model_whiten, 5),
                                         DOOR(ffi_native_info, 1),
                                         DOOR(ffi_network_block, 2),
                                         DOOR(ffi_network_map, 4),
                                         DOOR(ffi_registry, 1),
                                         DOOR(ffi_reservoir_add, 5),
                                         DOOR(ffi_reservoir_counts, 1),
                                         DOOR(ffi_reservoir_create, 5),
                                         DOOR(ffi_reservoir_merge, 5),
                                         DOOR(ffi_reservoir_smallest, 1),
                                         DOOR(ffi_reservoir_weights, 3),
                                         DOOR(ffi_response_bounds, 6),
                                         DOOR(ffi_response_deviance, 5),
                                         DOOR(ffi_response_evaluate, 8),
                                         DOOR(ffi_response_mean, 3),
                                         DOOR(ffi_response_outside, 5),
                                         DOOR(ffi_response_registry, 0),
                                         DOOR(ffi_response_variance, 5),
                                         DOOR(ffi_rng_block, 4),
                                         DOOR(ffi_rng_index, 5),
                                         DOOR(ffi_rng_norm, 4),
                                         DOOR(ffi_rows_digest, 4),
                                         DOOR(ffi_run_advance, 3),
                                         DOOR(ffi_run_create, 5),
                                         DOOR(ffi_run_destroy, 1),
                                         DOOR(ffi_run_position, 1),
                                         DOOR(ffi_run_progress, 1),
                                         DOOR(ffi_run_refill, 4),
                                         DOOR(ffi_run_report, 1),
                                         DOOR(ffi_run_status, 1),
                                         DOOR(ffi_schedule_collected, 3),
                                         DOOR(ffi_subsample_draw, 5),
                                         DOOR(ffi_subsample_info, 1),
                                         DOOR(ffi_sums_means, 2),
                                         DOOR(ffi_tape_run, 3),
                                         DOOR(ffi_text_join, 3),
                                         DOOR(ffi_text_read, 5),
                                         DOOR(ffi_text_records, 6),
                                         DOOR(ffi_tie_rows, 4),
                                         DOOR(ffi_topics_proportions, 5),
                                         {NULL, NULL, 0}};

void attribute_visible R_init_tallbayes(DllInfo* dll) {
  R_registerRoutines(dll, NULL, v_door, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
  ffi_threads_init();
}
