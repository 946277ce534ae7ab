#ifndef CSQLITE_SETTINGS_H
#define CSQLITE_SETTINGS_H

/* Before the first use of SQLite: it does not count the memory that it takes. The count has a lock of its own, which all connections
   of the process go through several times a row. Too late, or refused, it does no harm. */
void csqlite_do_not_count_memory(void);

#endif
