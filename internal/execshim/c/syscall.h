// System calls without a C library: the exec shim has none, so that it is small, starts at once,
// and does nothing that cannot be read here.
#pragma once

#include <asm/unistd.h>
#include <linux/types.h>

#define EPERM 1
#define ENOENT 2
#define EINTR 4
#define EACCES 13
#define ENOTDIR 20
#define EINVAL 22
#define EROFS 30
#define SIGCHLD 17
#define MSG_NOSIGNAL 0x4000

#if defined(__x86_64__)
static inline long syscall5(long n, long a, long b, long c, long d, long e) {
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return result;
}
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall execshim_main\n");
#elif defined(__aarch64__)
static inline long syscall5(long n, long a, long b, long c, long d, long e) {
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory", "cc");
	return x0;
}
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x0, sp\n\tbl execshim_main\n");
#elif defined(__arm__)
static inline long syscall5(long n, long a, long b, long c, long d, long e) {
	register long r7 __asm__("r7") = n;
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	register long r3 __asm__("r3") = d;
	register long r4 __asm__("r4") = e;
	__asm__ volatile("svc #0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4) : "memory", "cc");
	return r0;
}
__asm__(".globl _start\n_start:\n\tmov r0, sp\n\tbic sp, sp, #7\n\tbl execshim_main\n");
#elif defined(__riscv)
static inline long syscall5(long n, long a, long b, long c, long d, long e) {
	register long a7 __asm__("a7") = n;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d;
	register long a4 __asm__("a4") = e;
	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4) : "memory");
	return a0;
}
// The linker makes addresses relative to gp, also of the instruction that sets gp, unless this is forbidden.
__asm__(".globl _start\n_start:\n\t.option push\n\t.option norelax\n\tla gp, __global_pointer$\n\t.option pop\n\tmv a0, sp\n\tcall execshim_main\n");
#else
#error "the exec shim is written for amd64, arm64, armv7 and riscv64"
#endif

// These take 32-bit ids where the first versions took 16-bit ones.
#ifdef __NR_setgroups32
#define NR_setgroups __NR_setgroups32
#define NR_setgid __NR_setgid32
#define NR_setuid __NR_setuid32
#define NR_fchown __NR_fchown32
#else
#define NR_setgroups __NR_setgroups
#define NR_setgid __NR_setgid
#define NR_setuid __NR_setuid
#define NR_fchown __NR_fchown
#endif

// sys makes a system call with up to five arguments. It returns -errno on failure.
#define sys_(n, a, b, c, d, e, ...) syscall5(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
#define sys(...) sys_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

// The compiler generates calls of these.
void *memset(void *to, int c, unsigned long n) {
	for (volatile char *p = to; n--;)
		*p++ = c;
	return to;
}

void *memcpy(void *to, const void *from, unsigned long n) {
	volatile char *p = to;
	for (const char *q = from; n--;)
		*p++ = *q++;
	return to;
}
