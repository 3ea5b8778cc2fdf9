/* An executable and a shared object, both instrumented. */
#include "mock.h"

void library_store(volatile long *p);

int main(void) {
    volatile long *p = mock_heap(8);
    library_store(p);
    EXPECT(*p == 3);
    EXPECT_HEAT((void *)p, 8, 1, 8, 1, 8);
    return failures != 0;
}
