# What only compiled code can ask of the machine.
cdef extern from *:
    """
    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    #define dtsvm_has_avx2() __builtin_cpu_supports("avx2")
    #else
    #define dtsvm_has_avx2() 0
    #endif
    """
    int dtsvm_has_avx2() nogil
