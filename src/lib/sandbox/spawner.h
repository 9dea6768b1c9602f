/* Serves requests on standard input until it ends; returns the exit status. */
int spawn_server(void);
