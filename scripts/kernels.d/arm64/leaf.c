/* Threads that sleep in functions that call nobody, and hold a lock there: aarch64 has their return address in a register alone.
 * The two that want the lock also wait for a client, so that a watch takes them for connections and names their lock. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
static int word, pipes[2], sockets[2];
static volatile unsigned long sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
KEEP void futex_leaf(void) { syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0); sink++; }
KEEP void read_leaf(void) { char b; syscall(SYS_read, pipes[0], &b, 1); sink++; }
KEEP void select_nothing(void) { struct timeval t = {3600, 0}; select(0, 0, 0, 0, &t); sink++; }
KEEP void hold_in_leaf(void) { struct timespec t = {0, 40000000}; pthread_mutex_lock(&mutex); syscall(SYS_nanosleep, &t, 0); pthread_mutex_unlock(&mutex); sink++; }
KEEP void want(void) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); sink++; }
KEEP void wait_for_client(int milliseconds) { struct pollfd one = {sockets[0], POLLIN, 0}; poll(&one, 1, milliseconds); sink++; }
KEEP unsigned long leaf_add(unsigned long a, unsigned long n) { for (unsigned long i = 0; i < n; i++) { a ^= i * 31; __asm__ volatile("" : "+r"(a)); } return a; }
KEEP void calls_leaf(void) { sink = leaf_add(sink, 1000000); sink++; }
KEEP void in_handler(int s) { struct timespec t = {0, 10000000}; syscall(SYS_nanosleep, &t, 0); sink++; }
static void *f(void *u) { for (;;) futex_leaf(); }
static void *r(void *u) { for (;;) read_leaf(); }
static void *s(void *u) { for (;;) select_nothing(); }
static void *h(void *u) { for (;;) { hold_in_leaf(); sched_yield(); wait_for_client(2); } }
static void *w(void *u) { for (;;) { want(); wait_for_client(1); } }
static void *b(void *u) { sigset_t a; sigemptyset(&a); sigaddset(&a, SIGALRM); pthread_sigmask(SIG_UNBLOCK, &a, 0); for (;;) calls_leaf(); }
static void begin(const char *name, void *(*run)(void *)) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_setname_np(t, name); }
int main(void) {
  sigset_t a; struct itimerval every = {{0, 30000}, {0, 30000}};
  pipe(pipes); socketpair(AF_UNIX, SOCK_STREAM, 0, sockets); signal(SIGALRM, in_handler); sigemptyset(&a); sigaddset(&a, SIGALRM); pthread_sigmask(SIG_BLOCK, &a, 0);
  begin("futex_leaf", f); begin("read_leaf", r); begin("select_nothing", s); begin("holder", h); begin("waiter", w); begin("busy", b);
  setitimer(ITIMER_REAL, &every, 0);
  getchar(); getchar(); getchar(); return 0;
}
