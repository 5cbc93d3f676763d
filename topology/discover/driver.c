/* Sources: NVIDIA, Linux driver README, "The NVIDIA /proc interface" (/proc/driver/nvidia/version and gpus/); NVML API
 * Reference Guide (nvmlInit_v2, nvmlDeviceGetCount_v2). */
#include "topology/discover/driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "topology/discover/nvml.h"

#define PROC "/proc/driver/nvidia"

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;
	if (!dir)
		return 0;
	for (const struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Where the driver's files do not stand in /dev, under WSL 2, its library still answers. */
static unsigned count_by_nvml(void)
{
	void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int (*init)(void), (*shutdown)(void), (*count)(unsigned *);
	unsigned n = 0;
	if (!library)
		return 0;
	/* ISO C has no conversion from object to function pointers. */
	memcpy(&init, &(void *){dlsym(library, "nvmlInit_v2")}, sizeof init);
	memcpy(&shutdown, &(void *){dlsym(library, "nvmlShutdown")}, sizeof shutdown);
	memcpy(&count, &(void *){dlsym(library, "nvmlDeviceGetCount_v2")}, sizeof count);
	if (init && shutdown && count && init() == NVML_OK) {
		if (count(&n) != NVML_OK)
			n = 0;
		shutdown();
	}
	dlclose(library);
	return n;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ..." and "... Open Kernel Module for x86_64
 * 570.86.15  Release Build ...": the first word that begins with a digit and has a point. */
void driver_version_read(const char *text, char out[32])
{
	out[0] = '\0';
	for (const char *at = text; *at && *at != '\n'; at++) {
		const size_t n = strspn(at, "0123456789.");
		const bool begins = at == text || at[-1] == ' ';
		if (begins && n > 0 && n < 32 && memchr(at, '.', n) && *at != '.') {
			memcpy(out, at, n);
			out[n] = '\0';
			return;
		}
	}
}

void driver_version(char out[32])
{
	char text[256] = "";
	FILE *in = fopen(PROC "/version", "r");
	if (in) {
		if (!fgets(text, sizeof text, in))
			text[0] = '\0';
		fclose(in);
	}
	driver_version_read(text, out);
}

bool driver_shows_gpus(struct driver_facts *out)
{
	memset(out, 0, sizeof *out);
	const int listed = entries(PROC "/gpus");
	const bool file = access("/dev/nvidiactl", F_OK) == 0;
	const int n = listed || file ? listed : (int)count_by_nvml();
	if (n > 0)
		snprintf(out->shown, sizeof out->shown, "%d GPU%s %s", n, n == 1 ? "" : "s",
			listed ? "in " PROC "/gpus" : "by NVML");
	else if (file)
		snprintf(out->shown, sizeof out->shown, "/dev/nvidiactl");
	driver_version(out->version);
	return out->shown[0] != '\0';
}
