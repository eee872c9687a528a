/* A C program that opens a module in C++, argv[1], and calls it. With a second argument, all see its libraries. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words) {
    if (count < 2) return 2;
    void *module = dlopen(words[1], RTLD_NOW | (count > 2 ? RTLD_GLOBAL : RTLD_LOCAL));
    int (*function)(void) = module == NULL ? NULL : (int (*)(void))dlsym(module, "module");
    if (function == NULL) return 3;
    printf("%d\n", function());
    const char *error = dlerror();
    if (error != NULL) printf("%s\n", error);
    return 0;
}
