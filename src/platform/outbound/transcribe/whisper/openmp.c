/*
 * libgomp.so.1 for systems that have none. whisper.cpp's library names it, but was compiled without OpenMP: it only asks for
 * the number of the thread and of all threads outside of any parallel region, for which OpenMP defines these values.
 */
int omp_get_thread_num(void) { return 0; }
int omp_get_num_threads(void) { return 1; }
