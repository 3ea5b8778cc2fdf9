// Counts the words of its input in a hash table whose entries carry something that the counting never touches.
//
//     cc -g -O1 -o target/words thermalloc/examples/words.c
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    long count;
    char history[96];
    char word[];
};

static struct entry **new_table(void) { return calloc(256, sizeof(struct entry *)); }

static struct entry *new_entry(const char *word, struct entry *next) {
    struct entry *entry = malloc(sizeof *entry + strlen(word) + 1);
    entry->next = next;
    entry->count = 0;
    strcpy(entry->word, word);
    return entry;
}

static unsigned hash(const char *word) {
    unsigned hash = 5381;
    while (*word) hash = hash * 33 + *word++;
    return hash % 256;
}

int main(void) {
    struct entry **table = new_table();
    char line[256];
    while (fgets(line, sizeof line, stdin))
        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
            struct entry **head = &table[hash(word)], *entry = *head;
            while (entry && strcmp(entry->word, word)) entry = entry->next;
            if (!entry) *head = entry = new_entry(word, *head);
            entry->count++;
        }
}
