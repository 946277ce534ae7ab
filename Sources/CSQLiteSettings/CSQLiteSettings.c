#include "CSQLiteSettings.h"

#include <sqlite3.h>

/* Swift does not import functions with a variable number of arguments. */
void csqlite_do_not_count_memory(void) { (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
