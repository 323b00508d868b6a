#include "check.h"

#include "schedules/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void registry_finds(struct check* p_check) {
  for (size_t i = 0; tb_schedule_registry[i] != NULL; ++i) {
    const struct tb_schedule_type* p_type = tb_schedule_registry[i];
    CHECK(tb_schedule_find(p_type->name) == p_type);
    CHECK(p_type->self_size != NULL && p_type->init != NULL &&
          p_type->scale != NULL && p_type->citation != NULL);
  }
  CHECK(tb_schedule_find("no such schedule") == NULL);
}

static void constant_is_one(struct check* p_check) {
  const struct tb_params none = {NULL, 0};
  struct tb_schedule schedule = {tb_schedule_find("constant"), NULL};
  CHECK(schedule.type->init(&schedule, &none) == TB_STATUS_ok);
  CHECK(schedule.type->scale(&schedule, 0) == 1);
  CHECK(schedule.type->scale(&schedule, 123456) == 1);
}

static enum tb_status
decay_make(struct tb_schedule* p_schedule, double a, double b, double gamma) {
  const struct tb_param v_param[] = {{"a", &a, NULL, 1, 1},
                                     {"gamma", &gamma, NULL, 1, 1},
                                     {"b", &b, NULL, 1, 1}};
  const struct tb_params params = {v_param, 3};
  p_schedule->type = tb_schedule_find("decay");
  p_schedule->p_self = check_alloc(1, p_schedule->type->self_size(&params));
  return p_schedule->type->init(p_schedule, &params);
}

static void decay_is_formula(struct check* p_check) {
  struct tb_schedule schedule;
  CHECK(decay_make(&schedule, 3, 10, 0.55) == TB_STATUS_ok);
  for (size_t t = 0; t < 100000; t = 3 * t + 1) {
    const double expected = 3 * exp(-0.55 * log(10 + (double)t));
    CHECK_CLOSE(schedule.type->scale(&schedule, t), expected, 1e-14 * expected);
  }
  free(schedule.p_self);

  CHECK(decay_make(&schedule, 2, 1, 1) == TB_STATUS_ok);
  CHECK_CLOSE(schedule.type->scale(&schedule, 3), 0.5, 1e-15);
  free(schedule.p_self);
}

static void decay_refuses(struct check* p_check) {
  const double v_bad[][3] = {{0, 1, 0.5},
                             {-1, 1, 0.5},
                             {1, 0, 0.5},
                             {1, 1, 0},
                             {1, 1, 1.01},
                             {NAN, 1, 0.5},
                             {1, INFINITY, 0.5},
                             {1, 1, NAN}};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    struct tb_schedule schedule;
    CHECK(decay_make(&schedule, v_bad[k][0], v_bad[k][1], v_bad[k][2]) ==
          TB_STATUS_argument);
    free(schedule.p_self);
  }
}

static enum tb_status
cyclical_make(struct tb_schedule* p_schedule, double length, double n_explore) {
  const struct tb_param v_param[] = {{"length", &length, NULL, 1, 1},
                                     {"n_explore", &n_explore, NULL, 1, 1}};
  const struct tb_params params = {v_param, 2};
  p_schedule->type = tb_schedule_find("cyclical");
  p_schedule->p_self = check_alloc(1, p_schedule->type->self_size(&params));
  return p_schedule->type->init(p_schedule, &params);
}

static void cyclical_is_formula(struct check* p_check) {
  struct tb_schedule schedule;
  CHECK(cyclical_make(&schedule, 8, 3) == TB_STATUS_ok);
  for (size_t t = 0; t < 40; ++t) {
    const double r = (double)(t % 8) / 8;
    CHECK_CLOSE(schedule.type->scale(&schedule, t),
                0.5 * (1 + cos(acos(-1) * r)),
                1e-15);
    CHECK(schedule.type->explores(&schedule, t) == (t % 8 < 3));
  }
  free(schedule.p_self);
}

static void cyclical_refuses(struct check* p_check) {
  const double v_bad[][2] = {{0, 0}, {5, 5}, {5, -1}, {NAN, 0}, {5, NAN}};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    struct tb_schedule schedule;
    CHECK(cyclical_make(&schedule, v_bad[k][0], v_bad[k][1]) ==
          TB_STATUS_argument);
    free(schedule.p_self);
  }
}

const struct check_case check_schedules[] = {
    {"the registry finds every schedule by name", registry_finds},
    {"constant is one throughout", constant_is_one},
    {"decay is a (b + t)^-gamma", decay_is_formula},
    {"decay refuses parameters out of range", decay_refuses},
    {"cyclical: cosine, explores first", cyclical_is_formula},
    {"cyclical: refuses parameters out of range", cyclical_refuses},
    {NULL, NULL}};
