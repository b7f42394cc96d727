# The C types of rounds.py.
cimport cython

ctypedef fused Real:  # of the features; all else is double
    float
    double

ctypedef Py_ssize_t Int
ctypedef const unsigned char* Text

cdef double INF, AHEAD, SCALE, BAND, MOST, LEAST, BIAS_LEAST, BIAS_MOST, LEVEL_LEAST, LEVEL_MOST
cdef double TINY, RIDGE, MOST_LEAP
cdef Int HARD, CARE, MOST_CARE, FIRST_CHECK, LAST_CHECK, WARM_FIRST, TAIL, FIRST_APART, GROWTH, FIRST_LEAP, SPAN, WARM_SPAN, N_SHOWN
cdef Int NEVER, STEPS, N_PRODUCTS

@cython.final
cdef class Rows:
    cdef const double[:, ::1] wide
    cdef const float[:, ::1] narrow
    cdef const int[::1] columns
    cdef const long long[::1] starts
    cdef Int n_features
    cdef bint is_narrow, is_sparse, is_blocked, is_weighted
    cdef double[::1] weight, dual, norms, until
    cdef const signed char[::1] y
    cdef const int[::1] ids, at
    cdef int[::1] listed

@cython.final
cdef class Agents:
    cdef long long[::1] used, first_row, n_rows, first_end, n_ends, n_listed, sweeps, care
    cdef double[:, :, ::1] gain, estimate, offset
    cdef double[:, ::1] prox, pull, decision, level, start, reg
    cdef unsigned char[::1] has_offset, is_relay, is_hasty
    cdef double[::1] travel, wake, norm, drift, size, hold, drift_before, apart
    cdef const double[::1] C
    cdef Int n_parts

@cython.final
cdef class Ends:
    cdef long long[::1] ids, firsts, owner, twin
    cdef unsigned char[::1] is_wide, is_across
    cdef double[:, ::1] penalty
    cdef double[:, :, ::1] state, residual
    cdef double eta_inside, eta_across

@cython.final
cdef class Sets:
    cdef long long[::1] set_agent, agents, team, set_node, node_end, ends, node_noted, noted
    cdef long long[::1] set_team, order
    cdef const long long[::1] number, node, part
    cdef object named
    cdef readonly Int most_nodes, most_teams
    cdef double[::1] share, total_box, column, total, gamma, level
    cdef double[:, ::1] by_node, certified, ended
    cdef unsigned char[::1] is_silent

@cython.final
cdef class Past:
    cdef long long[::1] ages
    cdef double[:, :, :, ::1] z, x
    cdef double[:, :, ::1] kept
    cdef bint is_warm

@cython.final
cdef class Sums:
    cdef object blocks, named
    cdef double[::1] common, members, share, loss, slant, plus, minus, w, seen, dual, total, one, other
    cdef double[:, ::1] specific, pull, room, positive, negative
    cdef double objective, bound, theta, kept_plus, kept_minus

@cython.final
cdef class Work:
    cdef double[:, ::1] inflow
    cdef double[::1] shift, u, before
    cdef int[::1] slept
    cdef Int n_slept, begin, end, n_listed, looks, sweeps
    cdef double wake, travel, d_weights, d_bias, C, violation
    cdef bint is_hasty

@cython.final
cdef class Across:
    cdef readonly object arrays
    cdef long long[::1] slots
    cdef double[::1] residual
    cdef double[:, :, ::1] told, heard
    cdef unsigned char[::1] is_heard
    cdef const long long[::1] agents
    cdef const double[::1] longest
    cdef readonly bint are_short

@cython.final
cdef class Way:
    cdef Across across
    cdef const long long[:, ::1] places
    cdef const long long[::1] ends
    cdef const double[::1] most

@cython.final
cdef class Job:
    cdef double[:, ::1] log
    cdef const unsigned char[:, :, ::1] heard
    cdef double shrink, floor, kappa, residual_tol, gap_tol, next_look, first_look, heavy, long, primal, dual, far, moves
    cdef Int max_sweeps, max_free, age, begun, done, looks, all_looks, most, turn
    cdef bint has_checks, is_certified, is_converged

# An agent
@cython.locals(s=double[8], j=Int, k=Int)
cdef inline double dense_dot(const Real[:, ::1] X, Int i, double[::1] u) noexcept nogil
@cython.locals(s=double[4], j=Int, k=Int, begin=Int, end=Int, whole=Int)
cdef inline double sparse_dot(const Real[:, ::1] values, Rows rows, Int i, double[::1] u) noexcept nogil
@cython.locals(begin=Int, end=Int)
cdef inline Int n_whole(Rows rows, Int i) noexcept nogil
@cython.locals(s=double[8], b=Int, j=Int, k=Int, first=Int, whole=Int)
cdef inline double block_dot(const Real[:, ::1] values, Rows rows, Int i, double[::1] u) noexcept nogil
cdef inline double dot(Rows rows, Int i, double[::1] u) noexcept nogil
@cython.locals(j=Int)
cdef inline void dense_add(const Real[:, ::1] X, Int i, double scale, double[::1] out) noexcept nogil
@cython.locals(k=Int)
cdef inline void sparse_add(const Real[:, ::1] values, Rows rows, Int i, double scale, double[::1] out) noexcept nogil
@cython.locals(s=double[8], b=Int, j=Int, k=Int, first=Int, whole=Int)
cdef inline void block_add(const Real[:, ::1] values, Rows rows, Int i, double scale, double[::1] out) noexcept nogil
cdef inline void add(Rows rows, Int i, double scale, double[::1] out) noexcept nogil
@cython.locals(b=Int, j=Int, k=Int, value=double)
cdef inline double squared_norm(Rows rows, Int i) noexcept nogil
@cython.locals(known=double[::1], k=Int, i=Int, r=Int, last=Int)
cpdef object squared_norms(Rows rows, const int[::1] slots)
@cython.locals(k=Int, i=Int, weight=double)
cpdef object pull(Rows rows, const int[::1] slots, double[::1] out)
cdef inline double box_of(Rows rows, Int i, double C) noexcept nogil
@cython.locals(s=double[8], j=Int, k=Int)
cdef inline double distance(double[::1] u, double[::1] v, double d_weights, double d_bias) noexcept nogil
@cython.locals(k=Int)
cdef inline void list_all(Rows rows, Work work, Int first) noexcept nogil
@cython.locals(k=Int)
cdef inline void list_awake(Rows rows, Work work, double horizon) noexcept nogil
cdef inline void fall_asleep(Rows rows, Work work, Int k, double until) noexcept nogil
@cython.locals(q=Int, k=Int, i=Int, r=Int, y=double, is_whole_list=bint)
cdef inline double sweep(Rows rows, Work work) noexcept nogil
@cython.locals(j=Int, k=Int, looks=Int, met=Int, is_open=bint)
cdef inline void solve(Rows rows, Work work, double moved, double shrink, double floor, Int max_sweeps) noexcept nogil
cpdef object solve_rows(Rows rows, Work work, object metric, double moved, object pace)
@cython.locals(j=Int)
cpdef object lean(Work work, double[::1] u, double[::1] before, object screening)

@cython.locals(n=Int, j=Int)
cdef inline bint is_zero(const Real[:, ::1] X, Int i, Int first, Int end) noexcept nogil
@cython.locals(p=Int, n=Int, first=Int)
cpdef object count_blocks(const Real[:, ::1] X, const long long[::1] at, long long[::1] starts)
@cython.locals(p=Int, b=Int, n=Int, k=Int, first=Int, end=Int)
cpdef object fill_blocks(const Real[:, ::1] X, const long long[::1] at, Real[:, ::1] values, int[::1] columns)

# The step
@cython.locals(c=Int, j=Int, k=Int, h=Int)
cdef void gather(Agents agents, Ends ends, Work work, Int a) noexcept nogil
@cython.locals(j=Int)
cdef double aim(Agents agents, Work work, Int a) noexcept nogil
@cython.locals(c=Int, j=Int, x=double, norm=double, drift=double)
cdef void settle(Agents agents, Work work, Int a) noexcept nogil
@cython.locals(looks=Int, is_free=bint)
cdef Int local_step(Int a, Rows rows, Agents agents, Ends ends, Work work, Job job, Int age) noexcept nogil
@cython.locals(looks=Int, n=Int)
cpdef Int local_steps(long long[::1] some, Rows rows, Agents agents, Ends ends, Work work, Job job, Int age) except? -1
@cython.locals(s=double[8], j=Int, k=Int)
cdef inline double length(double[:, :, ::1] x, Int a, Int c) noexcept nogil
@cython.locals(f=double[8], m=double[8], j=Int, k=Int, a=Int, b=Int, u=double, v=double)
cdef inline void compare(Agents agents, Ends ends, Int h, Int g, Int c, Job job) noexcept nogil
cdef inline double square(double v) noexcept nogil
@cython.locals(c=Int, j=Int, g=Int, a=Int, b=Int)
cdef inline void cross(Agents agents, Ends ends, Int h, double to_a, double to_b) noexcept nogil
@cython.locals(i=Int, c=Int, h=Int, g=Int, a=Int, b=Int)
cdef void exchange(Agents agents, Ends ends, Job job, bint is_check) noexcept nogil
@cython.locals(c=Int, j=Int)
cdef void note(Ends ends, Int h, double[:, :, ::1] x, Int a, const double[:, :, ::1] other_x, Int b, const double[:, :, ::1] other_z, Int g) noexcept nogil
cpdef object note_end(Int h, Agents agents, Ends ends, const double[:, :, ::1] other_x, const double[:, :, ::1] other_z)
@cython.locals(i=Int, c=Int, j=Int, h=Int, a=Int)
cpdef object send(Across across, Agents agents, Ends ends)
@cython.locals(n=Int)
cpdef object step_and_send(Across across, Rows rows, Agents agents, Ends ends, Work work, Job job, Int age)
@cython.locals(s=double[8], j=Int, k=Int)
cdef inline double apart(double[:, :, ::1] z, Int h, const double[:, :, ::1] q, Int i, Int c) noexcept nogil
@cython.locals(c=Int, j=Int, a=Int)
cpdef double receive(Int h, Agents agents, Ends ends, const double[:, :, ::1] q, Int i, double kappa) except? -1
@cython.locals(i=Int)
cpdef double take_in(Across across, Agents agents, Ends ends, Job job) except? -1
@cython.locals(n=Int, i=Int, begin=Int, end=Int, square_=double, text=Text, across=Across)
cpdef bint hear_numbers(bytes data, list squares, Way way) except -1
@cython.locals(n=Int, a=Int)
cdef double drifting(Agents agents) noexcept nogil

# A check
@cython.locals(last=Int, check=Int)
cpdef Int last_check(Int age, bint is_warm) noexcept nogil
@cython.locals(check=Int)
cpdef Int next_check(Int age, bint is_warm) noexcept nogil
@cython.locals(since=Int, covered=Int)
cdef Int snapshot_step(Int check, bint is_warm) noexcept nogil
@cython.locals(check=Int, step=Int, begin=Int)
cpdef Int snapshot_place(Int age, bint is_warm) noexcept nogil
@cython.locals(k=Int, i=Int)
cpdef void remember(Int age, Past past, Agents agents, Ends ends) noexcept nogil
@cython.locals(k=Int, n=Int, a=Int, i=Int)
cdef void remember_apart(Int age, Past past, Agents agents, Ends ends) noexcept nogil
@cython.locals(c=Int, j=Int)
cdef inline void copy_block(double[:, :, ::1] source, Int i, double[:, :, ::1] target) noexcept nogil
@cython.locals(k=Int)
cdef void forget(Past past) noexcept nogil
@cython.locals(step=Int, k=Int, n_taken=Int)
cpdef bint is_whole(Past past, Int check) noexcept nogil
@cython.locals(moves=double[48], each=double[168], total=double, bias=double, c=Int, i=Int, j=Int, k=Int, n=Int, p=Int, first=Int, last=Int)
cdef void add_products(double[:, :, :, ::1] z, Int h, double[:, ::1] penalty, double[:, ::1] out, Int v) noexcept nogil
@cython.locals(begin=Int, end=Int, v=Int)
cdef Int measure(Int s, Sets sets, Ends ends, Past past, bint has_products) noexcept nogil
@cython.locals(i=Int, j=Int, k=Int)
cdef void measure_node(Int v, Sets sets, Ends ends, Past past, bint has_products, double[:, ::1] out, Int row) noexcept nogil
@cython.locals(n=Int, view=double[:, ::1])
cpdef object measure_nodes(long long[::1] some, Sets sets, Ends ends, Past past, bint has_products)
@cython.locals(n=Int)
cpdef object measure_set(Int s, Sets sets, Ends ends, Past past, bint has_products)
@cython.locals(gap=Int, i=Int, j=Int)
cdef void sort_up(double[::1] values, Int n) noexcept nogil
@cython.locals(j=Int, v=Int)
cdef void add_up(Sets sets, Int n) noexcept nogil
cdef inline double within(double value, double least, double most) noexcept nogil
cdef void balance(double[::1] level, double[::1] found, double start, Int age) noexcept nogil
@cython.locals(G=double[36], n=Int, i=Int, j=Int, k=Int)
cdef bint mixture(double[::1] total, double[::1] gamma) noexcept nogil
@cython.locals(c=Int, f=Int, i=Int)
cdef void mix(double[::1] gamma, double[:, :, :, ::1] taken, Int k, double[:, :, ::1] out) noexcept nogil
@cython.locals(k=Int)
cpdef void apply_leap(Int s, double[::1] gamma, Sets sets, Past past, Agents agents, Ends ends) noexcept nogil
@cython.locals(k=Int, has_changed=bint)
cdef bint set_penalties(Agents agents, Ends ends) noexcept nogil
@cython.locals(a=Int, c=Int, j=Int)
cdef bint set_penalty(Int h, Agents agents, Ends ends) noexcept nogil
@cython.locals(begin=Int, end=Int, k=Int)
cdef double mean_square(Rows rows, Agents agents, Int a) noexcept nogil
@cython.locals(total=double[4], c=Int, k=Int, h=Int, has_changed=bint, has_own_bias=bint)
cdef void set_gain(Int a, Rows rows, Agents agents, Ends ends) noexcept nogil
@cython.locals(i=Int)
cpdef void keep_estimates(Agents agents, Past past) noexcept nogil
@cython.locals(i=Int, n=Int)
cpdef void renew(Rows rows, Agents agents, Ends ends, Past past, bint has_leapt) noexcept nogil
@cython.locals(n=Int, a=Int)
cdef void loosen(Agents agents) noexcept nogil
@cython.locals(n=Int, a=Int, k=Int, h=Int, g=Int, found=double)
cdef void take_care(Int age, Agents agents, Ends ends) noexcept nogil
cpdef void revise(Int age, Agents agents, Ends ends) noexcept nogil
@cython.locals(s=Int, n=Int, j=Int, k=Int, first=Int, has_leapt=bint, has_products=bint, has_none=bint, has_changed=bint)
cdef void check(Int age, Rows rows, Agents agents, Ends ends, Sets sets, Past past, Int begin, Int end) noexcept nogil

# The certificate
@cython.locals(p1=Int, n_teams=Int, j=Int, t=Int, n=Int, k=Int, a=Int)
cpdef Int average(Int s, Sets sets, Agents agents, Sums sums) noexcept nogil
@cython.locals(p=Int, j=Int, k=Int, i=Int, y=double)
cdef void tally(Int a, Int t, Rows rows, Agents agents, Sums sums) noexcept nogil
@cython.locals(t=Int)
cdef void clear(Sums sums, Int n_teams) noexcept nogil
@cython.locals(j=Int)
cdef void clear_team(Sums sums, Int t) noexcept nogil
cdef bint lacks_room(Sums sums, Int t) noexcept nogil
@cython.locals(p=Int, j=Int, k=Int, i=Int)
cdef void add_classes(Int a, Int t, Rows rows, Agents agents, Sums sums) noexcept nogil
cpdef void tally_agent(Int a, Int t, Rows rows, Agents agents, Sums sums, bint has_room) noexcept nogil
@cython.locals(p1=Int, n=Int, a=Int, t=Int, j=Int, first=Int)
cpdef object tally_each(long long[::1] some, Rows rows, Agents agents, Sets sets, Sums sums, bint has_room, double[:, ::1] out)
@cython.locals(t=Int)
cpdef object teams_without_room(Int n_teams, bint is_shared, Sums sums)
@cython.locals(n_teams=Int, k=Int, a=Int, first=Int, is_shared=bint)
cdef void certify(Int s, Rows rows, Agents agents, Sets sets, Sums sums) noexcept nogil
@cython.locals(k=Int)
cdef Int counted(Int s, Sets sets, Agents agents) noexcept nogil
@cython.locals(last=Int, t=Int)
cdef void repair(Sums sums, Int n_teams, bint is_shared) noexcept nogil
cdef void choose_repair(Sums sums, double plus, double minus, double room) noexcept nogil
cdef bint needs_classes(Sums sums, Int t, bint is_shared) noexcept nogil
@cython.locals(p1=Int, j=Int)
cdef double feasible(Sums sums, Int t, bint is_shared) noexcept nogil
@cython.locals(p=Int, j=Int, t=Int)
cdef void judge(Int n_teams, double[::1] reg, Sums sums) noexcept nogil
@cython.locals(j=Int)
cdef double weights_square(double[::1] v) noexcept nogil
@cython.locals(s=Int, view=double[:, ::1])
cpdef object certify_sets(Rows rows, Agents agents, Sets sets, Sums sums)
cpdef object bound(Int n_teams, double[::1] reg, Sums sums)

# The loop
@cython.locals(s=Int)
cdef void look(Rows rows, Agents agents, Sets sets, Sums sums, Job job, bint is_calm) noexcept nogil
@cython.locals(s=Int, k=Int)
cpdef void conclude(double[:, ::1] certified, Sets sets, Job job, bint is_calm) noexcept nogil
cdef bint are_calm(Job job) noexcept nogil
cdef bint is_milestone(Int n_rounds) noexcept nogil
@cython.locals(age=Int)
cpdef bint is_check_due(Past past, Job job) noexcept nogil
@cython.locals(sweeps=Int, n=Int, k=Int)
cpdef void carry(Agents agents, Ends ends, Past past, Job job) noexcept nogil
cpdef void count_round(Job job) noexcept nogil
@cython.locals(n_rounds=Int)
cpdef bint may_look(Job job) noexcept nogil
cpdef object is_look_due(double primal, double dual, Job job)
cdef void finish_round(Rows rows, Agents agents, Ends ends, Sets sets, Past past, Job job) noexcept nogil
@cython.locals(is_calm=bint)
cdef void close(Rows rows, Agents agents, Ends ends, Sets sets, Past past, Sums sums, Job job) noexcept nogil
cpdef object close_round(Rows rows, Agents agents, Ends ends, Sets sets, Past past, Sums sums, Job job)
cpdef bint is_over(Job job) noexcept nogil
@cython.locals(looks=Int, n=Int)
cpdef object run(Rows rows, Agents agents, Ends ends, Sets sets, Past past, Work work, Sums sums, Job job)
cpdef Int next_look_apart(Int done) noexcept nogil
cpdef double gap_apart(double objective, double lower, double box) noexcept nogil
@cython.locals(used="long long[::1]")
cpdef object run_apart(Rows rows, Agents agents, Ends ends, Sets sets, Past past, Work work, Sums sums, Job job)
cdef inline Int n_sets_of(Sets sets) noexcept nogil
@cython.locals(p1=Int, n=Int, a=Int, j=Int, k=Int, h=Int)
cdef bint are_even(Agents agents, Ends ends) noexcept nogil
@cython.locals(n=Int, a=Int, j=Int)
cdef void mirror(Agents agents) noexcept nogil
@cython.locals(n=Int, a=Int, j=Int, k=Int, h=Int)
cdef void mirror_ends(Agents agents, Ends ends) noexcept nogil
@cython.locals(s=Int)
cdef void train_set(Rows rows, Agents agents, Ends ends, Sets sets, Past past, Work work, Sums sums, Job job) noexcept nogil
@cython.locals(age=Int, looks=Int, n=Int, a=Int, k=Int, h=Int, g=Int, is_check=bint, is_remembered=bint)
cdef void round_apart(Int s, Rows rows, Agents agents, Ends ends, Sets sets, Past past, Work work, Job job) noexcept nogil
@cython.locals(is_good=bint)
cdef void look_apart(Int s, Rows rows, Agents agents, Sets sets, Sums sums, Job job) noexcept nogil
cdef void join_both(const long long[::1] ids, const long long[::1] owner, const long long[::1] twin, const unsigned char[::1] is_wide, long long[::1] root, long long[::1] common, long long[::1] specific) noexcept nogil
@cython.locals(k=Int, h=Int, i=Int, j=Int, found=Int)
cdef void join(const long long[::1] ids, const long long[::1] owner, const long long[::1] twin, const unsigned char[::1] chosen, long long[::1] root, long long[::1] number) noexcept nogil

# Set-up
cdef Int n_ends_of(Ends ends) noexcept nogil
@cython.locals(n=Int, n_sets=Int, n_slots=Int, s=Int)
cdef void lay_sets(Sets sets, Agents agents, Ends ends, long long[::1] room, double[::1] share)
@cython.locals(n=Int)
cdef void cut_scratch(Sets sets, double[::1] room)
cdef void cut_work(Work work, double[:, ::1] room)
cdef void cut_sums(Sums sums, double[:, ::1] by_team, double[:, :, ::1] wide, double[:, ::1] scratch)
cpdef object mean_of_parts(object common, object specific, Agents agents)
@cython.locals(n=Int, i=Int, a=Int, k=Int, h=Int, s=Int, n_nodes=Int, n_noted=Int, before=Int, last=Int)
cdef void lay_ends(Sets sets, Agents agents, Ends ends, long long[::1] has_across) noexcept nogil
@cython.locals(i=Int, a=Int, t=Int, s=Int)
cdef void lay_teams(Sets sets, Agents agents, long long[::1] owner, long long[::1] size) noexcept nogil
@cython.locals(n=Int, i=Int, t=Int, s=Int, v=Int, u=Int, n_tasks=Int)
cdef Int link_agents(const long long[:, ::1] agent, const long long[:, :] links, const long long[::1] group, bint personal, long long[:, ::1] pairs, unsigned char[:, ::1] kinds) noexcept nogil
cdef inline Int link_two(Int a, Int b, Int kind, long long[:, ::1] pairs, unsigned char[:, ::1] kinds, Int n) noexcept nogil
cdef Int n_firsts_of(Ends ends) noexcept nogil
@cython.locals(n=Int, i=Int, h=Int, a=Int, b=Int, has_across=cython.bint)
cdef Int join_set(Int s, const long long[::1] number, const long long[::1] node, Ends ends, long long[::1] joined) noexcept nogil
@cython.locals(i=Int, n=Int, n_wide=Int)
cpdef object links_across(Ends ends)
@cython.locals(i=Int, most=Int)
cdef Int most_of(const long long[::1] numbers) noexcept nogil
@cython.locals(n_found=Int, i=Int, k=Int)
cdef Int renumber(long long[::1] numbers, long long[::1] place) noexcept nogil
@cython.locals(n=Int, i=Int, u=Int, v=Int)
cdef Int list_pairs(const long long[::1] joined, unsigned char[:, ::1] is_pair, long long[:, ::1] pairs) noexcept nogil
@cython.locals(i=Int)
cdef void count_segments(const long long[::1] slots, const long long[::1] counts, const long long[::1] ids, const long long[::1] owner, long long[:, ::1] found) noexcept nogil
@cython.locals(n=Int, i=Int, k=Int)
cdef void count_keys(const int[::1] keys, long long[::1] starts, int[::1] order) noexcept nogil
@cython.locals(i=Int, most=Int)
cdef Int largest(const long long[::1] slots, const long long[::1] major, const long long[::1] middle, const long long[::1] minor) noexcept nogil
cdef void sort_slots(const long long[::1] slots, const long long[::1] major, const long long[::1] middle, const long long[::1] minor, long long[::1] starts, long long[::1] between, long long[::1] out) noexcept nogil
@cython.locals(i=Int, k=Int)
cdef void count_slots(const long long[::1] slots, const long long[::1] column, long long[::1] starts, long long[::1] out) noexcept nogil
cdef void average_both(const long long[::1] common, const long long[::1] specific, Agents agents, double[:, ::1] total, double[::1] count, double[:, :, ::1] out) noexcept nogil
@cython.locals(n=Int, a=Int, j=Int, k=Int)
cdef void average_parts(const long long[::1] part, Int c, Agents agents, double[:, ::1] total, double[::1] count) noexcept nogil
@cython.locals(i=Int, j=Int)
cdef void share_out(const long long[::1] part, Int c, double[:, ::1] total, double[:, :, ::1] out) noexcept nogil
