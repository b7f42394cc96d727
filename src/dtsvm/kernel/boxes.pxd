# The C types of boxes.py.
cimport cython

ctypedef Py_ssize_t Int
ctypedef long long Count
ctypedef const unsigned char* Text

cdef double INF
cdef Count MOST_CALM

cdef class Like:
    cdef readonly object digest
    cdef readonly Count begun
    cdef readonly bytes like
    cdef const long long[:, ::1] places
    cdef readonly Int begin, end

@cython.final
cdef class Numbers:
    cdef readonly Count round
    cdef readonly list squares
    cdef readonly bytes data
    cdef readonly Like pattern

cdef class Box:
    cdef public Count newest, seen, applied, empty, calm, n_odd
    cdef public bint is_settled, is_late, is_heard
    cdef public object heard_at, roster_digest
    cdef public Like pattern
    cdef public double barred_until
    cdef Count one_round, other_round
    cdef object one, other

cdef void put_in(Box box, Count round_, object news, object now, bint has_values)
@cython.locals(newest=Count, is_here=bint)
cpdef bint is_lacking(Box box, Count round_) except -1
@cython.locals(is_one=bint, found=Count)
cdef object take_out(Box box, Count round_)

@cython.locals(begin=Int, end=Int, n=Int, shift=Int, at=Int, i=Int, round_=Count, byte=Count, total=double, text=Text, known=Text)
cpdef Numbers read_like(bytes data, Like like)
@cython.locals(at=Int, i=Int, stop=Int, is_hole=bint, is_round_due=bint)
cdef bint is_like(Text data, Text known, Int n, Like like) noexcept nogil
@cython.locals(value=double)
cdef inline double number_at(Text data, Int at) noexcept nogil
@cython.locals(s=double[4], at=Int, k=Int, whole=Int, value=double)
cdef double sum_of_squares(Text data, Int begin, Int end) noexcept nogil
@cython.locals(at=Int, is_so=bint)
cdef bint are_finite(Text data, Int begin, Int end) noexcept nogil

cdef class Post:
    cdef public dict boxes
    cdef public list present, heard
    cdef public Count round, calm, most_calm, begun, most, last
    cdef public object digest
    cdef public bint is_settled, is_quiet
    cdef public double residual
    cdef public tuple said, said_before

    @cython.locals(box=Box, pattern=Like, news=Numbers)
    cpdef int take_numbers(self, str name, bytes data, double now) except -1
    @cython.locals(box=Box, is_waited=bint, has_letters=bint)
    cpdef bint is_complete(self) except -1
    @cython.locals(box=Box, newest=Count)
    cpdef Count go_on(self) except? -1
    @cython.locals(box=Box, i=Int, is_so=bint)
    cpdef bint are_heard(self, list heard, double latest) except -1
    @cython.locals(box=Box, numbers=Numbers, heard=list, rest=list, way=tuple, is_in_time=bint, has_moved=bint, is_known=bint)
    cpdef tuple open_letters(self, dict ways, object bounds, object hear)
    @cython.locals(box=Box, least=Count)
    cpdef count_calm(self)
    @cython.locals(box=Box, pieces=list, out=dict, behind=list)
    cpdef tuple write(self, dict frames, bytes count)

cdef class Quiet:
    cdef Post post
    cdef object state, sums, tell, hear, take_in, step, across, bounds, digest, changes
    cdef tuple taken, stepped
    cdef dict ways, frames, places
    cdef list heard
    cdef Count end, least, most, offset, framed
    cdef Int n_count
    cdef double evict_seconds, residual_tol
    cdef public Count n

    @cython.locals(post=Post)
    cpdef expect(self, tuple when, tuple calm, tuple known, tuple ways, tuple steps, tuple frames)
    @cython.locals(post=Post, box=Box, age=Count)
    cpdef dict turn(self, double now, Int tag)
    @cython.locals(post=Post)
    cdef bint is_possible(self, double now) except -1
    @cython.locals(post=Post, box=Box, numbers=Numbers, way=tuple, found=bint)
    cdef bint is_all_heard(self) except -1
    @cython.locals(post=Post)
    cdef dict messages(self, bytes count)

@cython.locals(out=bytearray)
cpdef bytes counted(Int tag, Count value)
