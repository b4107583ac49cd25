/* Two libraries of fusec.export_c(threads="pool"), from different files, in one process:
   pool_program ONE TWO N SECONDS.  Prints what is wrong, or "ok" with the number of threads. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int function(int64_t n, const double *x, const double *y, double *out, void *workspace, size_t bytes);
static function *one, *two;
static int64_t n;
static double *x, *y, *want, until;
static volatile int wrong;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int threads(void) {
  int count = -2; /* . and .. */
  DIR *folder = opendir("/proc/self/task");
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

static int differs(function *f, double *out) {
  memset(out, 0xff, n * sizeof(double));
  if (f(n, x, y, out, NULL, 0)) return 1;
  return memcmp(out, want, n * sizeof(double)) != 0;
}

static void *calls(void *which) {
  double *out = malloc(n * sizeof(double));
  while (now() < until) wrong |= differs(which ? two : one, out);
  free(out);
  return NULL;
}

static function *loaded(const char *path, const char *name) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) { puts(dlerror()); exit(2); }
  return (function *)dlsym(library, name);
}

int main(int argc, char **argv) {
  (void)argc;
  one = loaded(argv[1], "one"), two = loaded(argv[2], "two");
  n = atol(argv[3]);
  x = malloc(n * sizeof(double)), y = malloc(n * sizeof(double)), want = malloc(n * sizeof(double));
  for (int64_t k = 0; k < n; ++k) x[k] = (k % 1000) / 1000.0, y[k] = (k % 77) / 7.0;
  double *out = malloc(n * sizeof(double));
  if (threads() != 1) { puts("threads before a call"); return 1; }
  if (one(n, x, y, want, NULL, 0)) { puts("an error"); return 1; }
  const int own = threads();
  if (differs(two, out)) { puts("two libraries, two results"); return 1; }
  if (threads() != own) { puts("two pools"); return 1; }
  until = now() + atof(argv[4]);
  pthread_t others[2];
  pthread_create(&others[0], NULL, calls, NULL);
  pthread_create(&others[1], NULL, calls, &others);
  int forks = 0;
  while (now() < until) {
    const pid_t child = fork(); /* while the others are anywhere in the pool's code */
    if (child == 0) {
      alarm(60);
      if (threads() != 1 || differs(one, out) || differs(two, out)) _exit(3);
      _exit(threads() == own ? 0 : 4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status) { printf("a child ended with %d\n", status); return 1; }
    ++forks;
    wrong |= differs(forks % 2 ? one : two, out);
  }
  pthread_join(others[0], NULL), pthread_join(others[1], NULL);
  if (wrong) { puts("wrong results"); return 1; }
  if (threads() != own) { puts("more threads"); return 1; }
  printf("ok %d threads %d forks\n", own, forks);
  return 0;
}
