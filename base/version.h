/* The version of the program, as in `stepsim --version`, in every result and in the keys of profiles. */
#ifndef STEPSIM_BASE_VERSION_H
#define STEPSIM_BASE_VERSION_H

#define STEPSIM_VERSION "0.1.0"

#endif
