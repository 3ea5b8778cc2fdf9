// Allocates nothing and ends: what the runtime itself does at the end happens in a process that has hardly begun to be monitored.
int main(void) {
    return 0;
}
