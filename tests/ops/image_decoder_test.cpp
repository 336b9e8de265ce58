#include <algorithm>
#include <cstring>

#include "ops/op_cases.h"

namespace tenon {
namespace {

#include "ops/image_files.inc"

OpCall Call(std::span<const uint8_t> file, std::string format = "RGB") {
  return {"ImageDecoder",
          20,
          {Tensor::Of<uint8_t>({static_cast<int64_t>(file.size())}, file)},
          MakeAttributes(Attr("pixel_format", std::move(format)))};
}

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

const std::vector<uint8_t> kExpected(std::begin(kPixels), std::end(kPixels));

TEST(ImageDecoderTest, ReadsEveryFormat) {
  const std::span<const uint8_t> files[] = {kBmp,     kPng,         kTiff,
                                            kTiffLzw, kTiffDeflate, kTiffPackBits};
  for (const auto& file : files) {
    const Tensor y = RunTensorOp(Call(file));
    EXPECT_EQ(y.shape(), Shape({4, 6, 3}));
    EXPECT_EQ(ElementsOf<uint8_t>(y), kExpected);
  }
}

TEST(ImageDecoderTest, ReadsAnEmptyChunkOfPixels) {
  constexpr size_t kBehindHeader = 33;
  const uint8_t chunk[] = {0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xaf, 0x06, 0x1e};
  std::vector<uint8_t> file(std::begin(kPng), std::end(kPng));
  file.insert(file.begin() + kBehindHeader, std::begin(chunk), std::end(chunk));
  EXPECT_EQ(ElementsOf<uint8_t>(RunTensorOp(Call(file))), kExpected);
}

// Formats that need a library are read if it is installed; otherwise the error names it.
TEST(ImageDecoderTest, ReadsOrNamesTheLibrary) {
  const std::pair<std::span<const uint8_t>, std::string> files[] = {
      {kWebp, "WebP pictures need the library libwebp.so.7"},
      {kJpeg2000, "JPEG 2000 pictures need the library libopenjp2.so.7"}};
  for (const auto& [file, missing] : files) {
    const auto outputs = RunOp(Call(file));
    if (outputs) {
      EXPECT_EQ(ElementsOf<uint8_t>((*outputs)[0].tensor()), kExpected);
    } else {
      EXPECT_EQ(outputs.error().message().substr(0, missing.size()), missing);
    }
  }
}

TEST(ImageDecoderTest, OrdersChannels) {
  const std::vector<uint8_t> bgr = ElementsOf<uint8_t>(RunTensorOp(Call(kPng, "BGR")));
  const Tensor gray = RunTensorOp(Call(kPng, "Grayscale"));
  EXPECT_EQ(gray.shape(), Shape({4, 6, 1}));
  for (size_t i = 0; i < 24; ++i) {
    const uint8_t* rgb = kPixels + 3 * i;
    EXPECT_EQ(bgr[3 * i], rgb[2]);
    EXPECT_EQ(bgr[3 * i + 2], rgb[0]);
    const double luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    EXPECT_NEAR(gray.data<uint8_t>()[i], luma, 0.51);
  }
  EXPECT_EQ(ElementsOf<uint8_t>(RunTensorOp(Call(kTiffGray, "Grayscale"))),
            ElementsOf<uint8_t>(gray));
}

TEST(ImageDecoderTest, ReadsPortableFormats) {
  const auto gray = [](std::string_view file) {
    return ElementsOf<uint8_t>(RunTensorOp(Call(Bytes(file), "Grayscale")));
  };
  const std::vector<uint8_t> bits = {0, 255, 255, 0};
  EXPECT_EQ(gray("P1\n# a comment\n2 2\n1 0\n01\n"), bits);
  EXPECT_EQ(gray("P4 2 2\n\x80\x40"), bits);
  EXPECT_EQ(gray("P2 2 1 15 0 15"), (std::vector<uint8_t>{0, 255}));
  EXPECT_EQ(gray(std::string_view("P5 1 1 65535\n\x80\x00", 15)), std::vector<uint8_t>{128});
  EXPECT_EQ(ElementsOf<uint8_t>(RunTensorOp(Call(Bytes("P3 1 1 255 1 2 3")))),
            (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(ElementsOf<uint8_t>(RunTensorOp(Call(Bytes("P6 1 1 255 abc")))),
            (std::vector<uint8_t>{'a', 'b', 'c'}));
}

TEST(ImageDecoderTest, RefusesPortableFormatsThatLackTheirLastPixel) {
  for (const std::string_view file : {"P1 2 2 1 0 0", "P4 2 2\n\x80", "P2 2 1 15 0",
                                      "P5 2 1 255\na", "P3 1 1 255 1 2", "P6 1 1 255 ab"}) {
    EXPECT_EQ(RunTensorOp(Call(Bytes(file))).shape(), Shape({0, 0, 3})) << file;
  }
}

// One strip of gray pixels, in rows of whole bytes.
std::vector<uint8_t> TiffOfStrip(uint32_t width, uint32_t height, uint32_t bits,
                                 const std::vector<uint8_t>& strip) {
  constexpr uint32_t kStripOffsets = 273, kByteCounts = 279;
  const std::pair<uint32_t, uint32_t> tags[] = {{256, width},
                                                {257, height},
                                                {258, bits},
                                                {259, 1},
                                                {262, 1},
                                                {277, 1},
                                                {278, height},
                                                {kByteCounts, static_cast<uint32_t>(strip.size())},
                                                {kStripOffsets, 10 + 12 * 9}};
  std::vector<uint8_t> file = {'I', 'I', '*', 0, 8, 0, 0, 0, std::size(tags), 0};
  const auto add = [&](uint32_t value) {
    for (int i = 0; i < 4; ++i) file.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  for (const auto& [tag, value] : tags) {
    add(tag | 4u << 16);  // of type LONG
    add(1);
    add(value);
  }
  file.insert(file.end(), strip.begin(), strip.end());
  return file;
}

TEST(ImageDecoderTest, ReadsTiffOfAnyDepth) {
  const auto gray = [](uint32_t width, uint32_t height, uint32_t bits,
                       const std::vector<uint8_t>& strip) {
    return ElementsOf<uint8_t>(
        RunTensorOp(Call(TiffOfStrip(width, height, bits, strip), "Grayscale")));
  };
  EXPECT_EQ(gray(3, 2, 1, {0xA0, 0x40}), (std::vector<uint8_t>{255, 0, 255, 0, 255, 0}));
  EXPECT_EQ(gray(3, 2, 4, {0x0F, 0x50, 0xA3, 0x00}),
            (std::vector<uint8_t>{0, 255, 85, 170, 51, 0}));
  EXPECT_EQ(gray(3, 1, 8, {7, 0, 255}), (std::vector<uint8_t>{7, 0, 255}));
  EXPECT_EQ(gray(2, 1, 16, {0x34, 0x12, 0xFF, 0xFF}), (std::vector<uint8_t>{0x12, 255}));
  EXPECT_EQ(ErrorOf(Call(TiffOfStrip(3, 1, 5, {0, 0, 0}))),
            "a TIFF picture of kind 1 with 1 samples of 5 bits, predictor 1 and planes 1");
}

// A truncated or changed file gives an image, none, or an error, but no fault.
TEST(ImageDecoderTest, SurvivesDamage) {
  const std::span<const uint8_t> files[] = {kBmp,         kPng,          kTiff,    kTiffLzw,
                                            kTiffDeflate, kTiffPackBits, kTiffGray};
  for (const auto& file : files) {
    for (size_t size = 0; size < file.size(); size += 7) {
      const auto outputs = RunOp(Call(file.first(size)));
      if (outputs) {
        EXPECT_EQ((*outputs)[0].tensor().rank(), 3u);
      }
    }
    uint32_t state = 1;
    for (size_t i = 0; i < 60; ++i) {
      std::vector<uint8_t> changed(file.begin(), file.end());
      for (int k = 0; k < 3; ++k) {
        state = state * 1664525u + 1013904223u;
        changed[(state >> 8) % std::min<size_t>(changed.size(), 400)] =
            static_cast<uint8_t>(state >> 4);
      }
      const auto outputs = RunOp(Call(changed));
      if (outputs) {
        EXPECT_EQ((*outputs)[0].tensor().rank(), 3u);
      }
    }
  }
}

// One column, cut out of square tiles that are all the same bytes of the file.
std::vector<uint8_t> TiffOfTiles(uint32_t side, uint32_t tiles) {
  const std::pair<uint32_t, uint32_t> tags[] = {{256, 1},    {257, side * tiles}, {258, 8},
                                                {322, side}, {323, side},         {324, 0}};
  std::vector<uint8_t> file = {'I', 'I', '*', 0, 8, 0, 0, 0, std::size(tags), 0};
  const auto add = [&](uint32_t value) {
    for (int i = 0; i < 4; ++i) file.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  const auto offsets = static_cast<uint32_t>(file.size() + 12 * std::size(tags));
  for (const auto& [tag, value] : tags) {
    add(tag | 4u << 16);  // of type LONG
    add(tag == 324 ? tiles : 1);
    add(tag == 324 ? offsets : value);
  }
  for (uint32_t i = 0; i < tiles; ++i) add(offsets);
  file.resize(offsets + std::max<size_t>(size_t{4} * tiles, size_t{side} * side), 7);
  return file;
}

TEST(ImageDecoderTest, RefusesTilesFarLargerThanThePicture) {
  EXPECT_EQ(RunTensorOp(Call(TiffOfTiles(64, 3))).shape(), Shape({192, 1, 3}));
  EXPECT_EQ(RunTensorOp(Call(TiffOfTiles(1024, 700))).shape(), Shape({0, 0, 3}));
}

TEST(ImageDecoderTest, GivesNoPixelsForOtherFiles) {
  for (const char* file : {"", "P", "P6", "P6 99999999 99999999 255\n", "GIF89a", "BM", "II*"}) {
    EXPECT_EQ(RunTensorOp(Call(Bytes(file))).shape(), Shape({0, 0, 3})) << file;
  }
  EXPECT_EQ(ErrorOf(Call(kPng, "CMYK")),
            "attribute 'pixel_format': expected RGB, BGR or Grayscale, got 'CMYK'");
}

}  // namespace
}  // namespace tenon
