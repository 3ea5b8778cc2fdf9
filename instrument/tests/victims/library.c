/* The shared object of modules.c, with a descriptor of its own. */
void library_store(volatile long *p) {
    *p = 3;
}
