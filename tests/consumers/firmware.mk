# A layer of lookupc in a project: make -f firmware.mk CC=arm-none-eabi-gcc AR=arm-none-eabi-ar
KWS ?= emitted/kws
BUILD ?= build/kws
CFLAGS ?= -O2 -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -mthumb
CPPFLAGS += -I$(KWS)/inc -I$(KWS)/src -I$(KWS)/test
SOURCES := $(wildcard $(KWS)/src/*.[cS]) $(KWS)/test/kws_selftest.c

$(BUILD)/libkws.a: $(addprefix $(BUILD)/,$(addsuffix .o,$(notdir $(SOURCES))))
	$(AR) rcs $@ $^
$(BUILD)/%.o: $(KWS)/src/% | $(BUILD)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(BUILD)/%.o: $(KWS)/test/% | $(BUILD)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(BUILD):
	mkdir -p $@
