/* The program lookupc: finds --tree, then leaves its arguments to commands/cli.lua. */
#include "commands/harness_modules.h"
#include "gen/host/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    const char *tree = NULL;
    char **arguments = argv + (argc > 0);
    if (arguments[0] != NULL && strcmp(arguments[0], "--tree") == 0) {
        struct stat status;
        tree = arguments[1];
        if (tree == NULL || stat(tree, &status) != 0 || !S_ISDIR(status.st_mode)) {
            fprintf(stderr, "lookupc: --tree: %s: must be the folder that holds gen/ and templates/\n", tree == NULL ? "" : tree);
            return 2;
        }
        arguments += 2;
    }
    return program_run(tree, "commands.cli", arguments, harness_modules);
}
