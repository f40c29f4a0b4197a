/* Threads that do one known thing each, under a name that says what. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static volatile uint64_t sink;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int sockets[2];
static int pipes[2];

/* Runs until this many nanoseconds of the thread's own CPU time are over. */
KEEP void burn_inner(uint64_t nanoseconds) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  uint64_t end = now.tv_sec * 1000000000ull + now.tv_nsec + nanoseconds;
  do {
    for (int i = 0; i < 200000; i++) sink += i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec * 1000000000ull + now.tv_nsec < end);
}
KEEP void burn_middle(uint64_t nanoseconds) {
  volatile char room[2000];
  room[sink % 2000] = 1;
  burn_inner(nanoseconds);
  sink += room[7];
}
KEEP void burn_outer(uint64_t nanoseconds) {
  burn_middle(nanoseconds);
  sink++;
}

static void doze(uint64_t nanoseconds) {
  struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  nanosleep(&time, 0);
}

static void *spins(void *unused) {
  for (;;) burn_outer(1000000000);
}
static void *sleeps(void *unused) {
  for (;;) doze(3600000000000ull);
}
static void *polls_socket(void *unused) {
  struct pollfd file = {sockets[0], POLLIN, 0};
  for (;;) poll(&file, 1, -1);
}
static void *polls_nothing(void *unused) {
  for (;;) poll(0, 0, 3600000);
}
static void *receives(void *unused) {
  char byte;
  for (;;) recv(sockets[1], &byte, 1, 0);
}
static void *reads_pipe(void *unused) {
  char byte;
  for (;;) if (read(pipes[0], &byte, 1) < 0) doze(1000000);
}
static void *holds(void *ready) {
  pthread_mutex_lock(&held);
  pthread_barrier_wait(ready);
  for (;;) doze(3600000000000ull);
}
static void *waits_for_lock(void *unused) {
  pthread_mutex_lock(&held);
  return 0;
}
/* A fifth of its life on a CPU, if there is one. */
static void *alternates(void *unused) {
  for (;;) {
    burn_outer(2000000);
    doze(8000000);
  }
}
static void *burns_briefly(void *unused) {
  burn_outer(4000000);
  return 0;
}
/* Begins threads that end again at once. */
static void *breeds(void *unused) {
  for (;;) {
    pthread_t child;
    pthread_create(&child, 0, burns_briefly, 0);
    pthread_setname_np(child, "brief");
    pthread_join(child, 0);
    doze(4000000);
  }
}

static void begin(const char *name, void *(*work)(void *), void *argument) {
  pthread_t thread;
  pthread_create(&thread, 0, work, argument);
  pthread_setname_np(thread, name);
}

int main(int arguments, char **argument) {
  /* With an argument it keeps itself closed, as a server that root started with --user. */
  if (arguments > 1) prctl(PR_SET_DUMPABLE, 0);
  pthread_barrier_t ready;
  pthread_barrier_init(&ready, 0, 2);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || pipe(pipes)) return 1;
  begin("holds", holds, &ready);
  pthread_barrier_wait(&ready);
  begin("waits_for_lock", waits_for_lock, 0);
  begin("spins", spins, 0);
  begin("sleeps", sleeps, 0);
  begin("polls_socket", polls_socket, 0);
  begin("polls_nothing", polls_nothing, 0);
  begin("receives", receives, 0);
  begin("reads_pipe", reads_pipe, 0);
  begin("alternates", alternates, 0);
  printf("%lx %lx %lx %lx\n", (long)burn_inner, (long)burn_middle, (long)burn_outer, (long)spins);
  fflush(stdout);
  /* Each line begins a thread; the end of its input ends it. */
  char line[16];
  while (fgets(line, sizeof line, stdin)) {
    if (line[0] == 'b') begin("breeds", breeds, 0);
    else begin("spins", spins, 0);
  }
  return 0;
}
